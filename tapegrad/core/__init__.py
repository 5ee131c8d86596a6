"""The machine: op records, the tape, recording, the reverse replay. It holds no operation's maths."""
