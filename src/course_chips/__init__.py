"""Our multiply and our attention as other chips' compilers make them: compiled here, not run.

Nothing of this needs such a chip. `nox -s chips` compiles, and writes a record for each chip to `records/chips/`; who
reads one needs the standard library only, `course_chips.kept`.
"""
