class error(Exception): ...  # noqa: N801

class Options:
    log_errors: bool
    max_mem: int

class _Regexp:
    def search(self, text: str) -> object | None: ...

def compile(pattern: str, options: Options | None = None) -> _Regexp: ...  # noqa: A001
