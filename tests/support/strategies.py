"""What several tests let Hypothesis draw."""

from hypothesis import strategies as st

# As `st.text()`, which first asks of each of a million letters whether UTF-8 has it: 1.4 s of the processor.
ANY_LETTER = st.characters(exclude_categories=["Cs"])
ANY_TEXT = st.text(ANY_LETTER)
