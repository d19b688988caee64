"""A text that, where nothing stops it, opens elements, leaves attributes, turns writing around and colours a screen."""

HOSTILE = "<script>document.title='ran'</script>\"'><img src=x onerror=\"document.title='ran'\">\u202e\x1b[31m"
