# SPDX-License-Identifier: MIT
"""What bench/report is made of: read and join reports, draw charts, write the page."""
