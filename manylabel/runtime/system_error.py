"""What the operating system refused, as a sentence: which file, why, and what to do."""

from __future__ import annotations

import errno
import os

ADVICE = {
    errno.ENOSPC: "make room, or name another place",
    errno.EDQUOT: "make room, or name another place",
    errno.EFBIG: "the largest size of a file is limited there (ulimit -f); name another place",
    errno.EROFS: "it cannot be written to; name another place",
    errno.EACCES: "ask for the right to it, or name another place",
    errno.EPERM: "ask for the right to it, or name another place",
    errno.EISDIR: "name a file, not a folder",
    errno.ENOTDIR: "a part of its path is a file, not a folder",
    errno.EEXIST: "a file is there already; name another place",
    errno.ENAMETOOLONG: "name something shorter",
    errno.EMFILE: "allow more open files (ulimit -n)",
}
NO_MEMORY = "can't allocate memory"  # torch's words
OF_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}


def is_of_the_system(error: OSError) -> bool:
    """Whether it is the user's to mend. Without a file and a reason it is a mistake of a program, perhaps ours."""
    return error.errno is not None or error.filename is not None


def sentence(error: OSError) -> str:
    where = error.filename2 if error.filename2 is not None else error.filename
    if isinstance(where, bytes):
        where = os.fsdecode(where)
    reason = (error.strerror or str(error)).lower() if error.errno else str(error)
    advice = ADVICE.get(error.errno or 0)
    return ": ".join(str(part) for part in (where, reason) if part not in (None, "")) + (
        f"; {advice}" if advice else ""
    )


def is_out_of_memory(error: Exception) -> bool:
    """Of Python, or of torch, which says it as a RuntimeError."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or NO_MEMORY in str(error)
