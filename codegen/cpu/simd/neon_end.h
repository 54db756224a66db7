// Nothing to undo: every 64-bit Arm processor has these instructions.
