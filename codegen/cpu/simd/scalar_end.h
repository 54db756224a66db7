// Nothing to undo: portable code needs no target options.
