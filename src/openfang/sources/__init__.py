"""Where tools come from. Nothing here runs a call that does not carry the pipeline's stamp."""
