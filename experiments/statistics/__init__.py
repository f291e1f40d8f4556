"""Statistics of a few independent runs: Student's distribution, intervals of means, three-way verdicts and their power."""
