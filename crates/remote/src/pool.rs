//! Threads that talk to servers at the same time.

use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

type Task = Box<dyn FnOnce() + Send>;

/// A fixed number of threads beside the caller's, which does all alone where there are none.
pub(crate) struct Pool {
    tasks: Option<Sender<Task>>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    pub(crate) fn new(size: usize) -> Self {
        let (tasks, queue): (Sender<Task>, Receiver<Task>) = unbounded();
        let threads = (0..size)
            .map(|number| {
                let queue = queue.clone();
                std::thread::Builder::new()
                    .name(format!("wire-{number}"))
                    .spawn(move || queue.iter().for_each(|task| task()))
                    .expect("the system has threads")
            })
            .collect();
        Self {
            tasks: Some(tasks),
            threads,
        }
    }

    /// With the caller's.
    pub(crate) fn num_threads(&self) -> usize {
        self.threads.len() + 1
    }

    /// Runs all of `works`, the first on the caller's thread, and gives their results in order.
    pub(crate) fn run<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(&self, works: Vec<W>) -> Vec<T> {
        if self.threads.is_empty() {
            return works.into_iter().map(|work| work()).collect();
        }
        let mut works = works.into_iter();
        let first = works.next();
        let answers: Vec<Receiver<T>> = works
            .map(|work| {
                let (sender, receiver) = bounded(1);
                let task: Task = Box::new(move || {
                    // The caller may have gone with an error of another server.
                    let _ = sender.send(work());
                });
                let tasks = self
                    .tasks
                    .as_ref()
                    .expect("the pool lives as long as its session");
                assert!(tasks.send(task).is_ok(), "the threads live as long as the pool");
                receiver
            })
            .collect();
        let mut results: Vec<T> = first.map(|work| work()).into_iter().collect();
        for answer in answers {
            results.push(answer.recv().expect("a thread answers every task"));
        }
        results
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.tasks = None;
        for thread in self.threads.drain(..) {
            // A panic of a task has been seen by who waited for it.
            let _ = thread.join();
        }
    }
}
