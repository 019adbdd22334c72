"""An apiserver that shows webhooks a client certificate, set up as in docs/operations.md."""

from pathlib import Path

from tests.support.certificates import Authority

_ADMISSION = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration: &webhooks
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: {kubeconfig}
- name: ValidatingAdmissionWebhook
  configuration: *webhooks
"""

_KUBECONFIG = """
apiVersion: v1
kind: Config
users:
- name: '*'
  user:
    client-certificate: {pair}
    client-key: {pair}
"""


def showing_certificate(folder: Path, authority: Authority) -> tuple[str, ...]:
    """Return the flags of an apiserver that shows a certificate of this authority to every webhook."""
    kubeconfig, admission = folder / "webhooks.conf", folder / "admission.yaml"
    kubeconfig.write_text(_KUBECONFIG.format(pair=authority.pair()), encoding="utf-8")
    admission.write_text(_ADMISSION.format(kubeconfig=kubeconfig), encoding="utf-8")
    return (f"--admission-control-config-file={admission}",)
