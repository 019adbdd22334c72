"""The SidecarSets that the articles, which users learn from, show: word for word, but for what no apiserver takes.

Of `SHARING`, a member was called `Name`, a host path was a bare string, the volume's name had a dot in it, and one of
two values had to be chosen. Those that were shown in part have a selector and an image here.
"""

LOG_VOLUME = """
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata:
  name: test-sidecarset
spec:
  namespace: ns          # 管理的 Namespace,默认为全集群生效
  selector:              # 注入的 Pod 的 label selector
    matchLabels:
      app: nginx
  updateStrategy:        # 升级策略
    type: RollingUpdate
    maxUnavailable: 1
  containers:            # sidecar 容器
  - name: sidecar1
    image: centos:6.7
    command: ["sleep", "999d"] # do nothing at all
    volumeMounts:
    - name: log-volume
      mountPath: /var/log
  volumes: # this field will be merged into pod.spec.volumes
  - name: log-volume
    emptyDir: {}
"""
SHARING = """
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata:
  name: sidecarset
spec:
  selector:
    matchLabels:
      app: sample
  containers:
  - name: nginx
    image: nginx:alpine
    volumeMounts:
    - mountPath: /nginx/conf
      name: nginx-conf
    # extended sidecar container fields
    podInjectPolicy: BeforeAppContainer # container 注入 spec 位置
    shareVolumePolicy:
      type: enabled
    transferEnv:
    - sourceContainerName: main
      envName: PROXY_IP
  volumes:
  - name: nginx-conf
    hostPath:
      path: /data/nginx/conf
  injectionStrategy:
    paused: false
"""
HOT_UPGRADE = """
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata:
  name: hotupgrade-sidecarset
spec:
  selector:
    matchLabels:
      app: hotupgrade
  containers:
  - name: sidecar
    image: openkruise/hotupgrade-sample:sidecarv1
    imagePullPolicy: Always
    lifecycle:
      postStart:
        exec:
          command:
          - /bin/sh
          - /migrate.sh
    upgradeStrategy:
      upgradeType: HotUpgrade
      hotUpgradeEmptyImage: openkruise/hotupgrade-sample:empty
"""
METADATA = """
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata:
  name: metadata-sidecarset
spec:
  selector:
    matchLabels:
      app: metadata
  containers:
  - name: log-agent
    image: log-agent:v1
  patchPodMetadata:
  - annotations:
      oom-score: '{"log-agent": 1}'
      custom.example.com/sidecar-configuration: '{"command": "/home/admin/bin/start.sh", "log-level": "3"}'
    patchPolicy: MergePatchJson
  - annotations:
      apps.kruise.io/container-launch-priority: Ordered
    patchPolicy: Overwrite
"""
