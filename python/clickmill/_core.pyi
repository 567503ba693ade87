from typing import final

__all__ = ["Schema", "build_info"]

@final
class Schema:
    """
    What a sample means: slots, tables and transforms, checked.
    """
    def __new__(cls, /, json: str) -> Schema: ...
    def groups(self, /) -> list[tuple[list[int], list[int]]]:
        """
        Per group of sparse slots: positions of its tables, positions of its slots.
        """
    @property
    def num_dense(self, /) -> int:
        """
        Total width of the dense slots.
        """
    def to_json(self, /) -> str: ...

def build_info() -> str:
    """
    JSON: version, profile, platform, and the processor features that matter here with whether they are there.
    """
