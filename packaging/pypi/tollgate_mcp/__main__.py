"""`python -m tollgate_mcp` is `tollgate`."""

from tollgate_mcp import main

main()
