//! Control messages to a server: JSON, one at a time.

use std::sync::Arc;
use std::time::Duration;

use clickmill_net::Deadline;
use clickmill_wire::{Frame, Kind};

use crate::link::Link;
use crate::{Error, Settings};

pub struct Control {
    link: Link,
    frame: Frame,
    answer: Frame,
}

impl Control {
    pub fn new(settings: &Settings, address: String) -> Self {
        let link = Link::new(
            "coordinator".to_owned(),
            address,
            settings.hello.clone(),
            settings.security.clone(),
            Arc::default(),
            settings.retries,
        );
        Self {
            link,
            frame: Frame::default(),
            answer: Frame::default(),
        }
    }

    pub fn ask(&mut self, request: &str, deadline: Duration) -> Result<String, Error> {
        self.frame.begin().bytes(request.as_bytes());
        let deadline = Deadline::after(deadline);
        let header = self
            .link
            .ask(&mut self.frame, Kind::Control, &mut self.answer, deadline)?;
        if header.kind != Kind::Control {
            return Err(Error::Answer {
                server: self.link.name.clone(),
                reason: format!("{:?} is no answer to a control message", header.kind),
            });
        }
        Ok(String::from_utf8_lossy(self.answer.payload()).into_owned())
    }
}
