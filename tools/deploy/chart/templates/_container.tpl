{{/* What the agent's container and the one that uninstalls have in common. */}}
{{- define "natra.directories" -}}
{{- $all := .Files.Get "platforms.yaml" | fromYaml -}}
{{- $own := get $all .Values.platform -}}
{{- with .Values.directories -}}
netDir: {{ .netDir | default $own.netDir }}
binDir: {{ .binDir | default $own.binDir }}
{{- end -}}
{{- end -}}

{{/* The options that say which directories natra goes to. */}}
{{- define "natra.place" -}}
- --platform={{ .Values.platform }}
{{- with .Values.directories.netDir }}
- --net-dir={{ . }}
{{- end }}
{{- with .Values.directories.binDir }}
- --bin-dir={{ . }}
{{- end }}
- --root=/host
{{- end -}}

{{- define "natra.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "natra.container" -}}
{{- $directories := include "natra.directories" . | fromYaml -}}
image: {{ include "natra.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
# Equal requests and limits make the pod one of the last to be evicted. The memory of a
# pod's BPF maps is the agent's if the agent limits it.
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  privileged: false
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  {{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version }}
  appArmorProfile:
    type: Unconfined
  {{- end }}
  capabilities:
    drop:
      - ALL
    add:
      - DAC_OVERRIDE
      - NET_ADMIN
      - SYS_ADMIN
      - SYS_CHROOT
      - SYS_PTRACE
volumeMounts:
  - name: net-dir
    mountPath: /host{{ $directories.netDir }}
    mountPropagation: HostToContainer
  - name: bin-dir
    mountPath: /host{{ $directories.binDir }}
    mountPropagation: HostToContainer
  # The runtime is asked for its version, and libcni's cache for the pods.
  - name: root
    mountPath: /host
    readOnly: true
    mountPropagation: HostToContainer
  # The pods' network namespaces. Not all of /run: CRI-O and Docker may mount secrets below that.
  - name: netns
    mountPath: /run/netns
    readOnly: true
    mountPropagation: HostToContainer
  - name: bpf
    mountPath: /sys/fs/bpf
    mountPropagation: HostToContainer
  # The copy of the namespaces' file, which the plugin reads at each ADD, and natractl at the
  # host's path, too.
  - name: state
    mountPath: /host/var/lib/natra
    mountPropagation: HostToContainer
  - name: state
    mountPath: /var/lib/natra
    readOnly: true
    mountPropagation: HostToContainer
  {{- if .Values.namespaces }}
  - name: namespaces
    mountPath: /etc/natra-namespaces
    readOnly: true
  {{- end }}
  {{- if .Values.groups }}
  - name: groups
    mountPath: /etc/natra
    readOnly: true
  {{- end }}
{{- end -}}

{{- define "natra.volumes" -}}
{{- $directories := include "natra.directories" . | fromYaml -}}
- name: net-dir
  hostPath:
    path: {{ $directories.netDir }}
    type: Directory
- name: bin-dir
  hostPath:
    path: {{ $directories.binDir }}
    type: Directory
- name: root
  hostPath:
    path: /
    type: Directory
- name: netns
  hostPath:
    path: /run/netns
    type: DirectoryOrCreate
- name: bpf
  hostPath:
    path: /sys/fs/bpf
    type: Directory
- name: state
  hostPath:
    path: /var/lib/natra
    type: DirectoryOrCreate
{{- if .Values.namespaces }}
- name: namespaces
  configMap:
    name: natra-namespaces
{{- end }}
{{- if .Values.groups }}
- name: groups
  configMap:
    name: natra-groups
{{- end }}
{{- end -}}
