function ReviseReplica(desiredObj, desiredReplica)
  place(desiredObj, "spec").replicas = desiredReplica
  return desiredObj
end
