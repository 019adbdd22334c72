  if at(desiredObj, "metadata", "labels", "resourcetemplate.karmada.io/retain-replicas") == "true" then
    spec.replicas = at(observedObj, "spec", "replicas")
  end
