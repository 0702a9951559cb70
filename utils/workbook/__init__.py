"""The learner's own copies of the lessons, their progress, and a class's.

`python -m utils.workbook` is what `make lab`, `make progress` and `make reset LESSON=4` call.
"""
