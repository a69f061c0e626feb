"""Recordings: what a stage held, ordinal by ordinal, in a folder of Arrow streams. Needs the extra ``record``."""

from ovstage.recording.reader import Recording
from ovstage.recording.recorder import Recorder, RecorderStats

__all__ = ["Recorder", "RecorderStats", "Recording"]
