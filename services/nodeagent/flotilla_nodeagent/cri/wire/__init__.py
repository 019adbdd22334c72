r"""Generated messages and stubs of cri.proto.

After a change of that file, run in services/nodeagent:

uv run --no-project --with grpcio-tools==1.85.1 --with grpclib==0.4.9 python -m grpc_tools.protoc -I. \
    --python_out=. --pyi_out=. --grpclib_python_out=. flotilla_nodeagent/cri/wire/cri.proto
"""
