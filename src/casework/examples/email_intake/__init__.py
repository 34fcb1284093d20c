"""Applications for loans by mail: attachments are read, an agent underwrites, a person decides, a letter is written.

`python -m casework.examples.email_intake` plays it with the mails in `mails/`. Read `lines.py` first (the four
processes), then `intake.py`, `underwriting.py`, `submission.py` and `repair.py` (their tasks). `settings.py` lists the
variables that say where mails come from and where letters go.
"""

from casework.examples.email_intake.application import app

__all__ = ["app"]
