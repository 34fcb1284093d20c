"""The plain pattern: the loan case as one writes it by hand in a durable engine, with an activity for every write.

Each tool call is four activities (start write, call, result write, event), each model call three (call, message write,
metric), each review five (pending write, event, state write; decision write, state write). Tools, scripted model and
tables are those of the product, so that only the shape differs. Belongs here: that workflow and its activities. Does
not belong here: measuring, and anything that would make the pattern dearer than its definition.
"""
