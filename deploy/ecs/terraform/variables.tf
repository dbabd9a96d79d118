variable "name" {
  description = "Of cluster, service, roles and log"
  type        = string
  default     = "sluice"
}

variable "image" {
  description = "The daemon with sluice.yaml at /etc/sluice: an image of yours FROM the one of deploy/docker, by its digest"
  type        = string

  validation {
    condition     = can(regex("@sha256:[0-9a-f]{64}$", var.image))
    error_message = "Name the image by its digest, such as NAME@sha256:…, so that a restart runs what was deployed."
  }
}

variable "subnet_id" {
  description = "Where the instance stands; the volume is in its zone. It has to reach AWS, by a NAT gateway or endpoints."
  type        = string
}

variable "security_group_ids" {
  description = "Of the instance. Nothing has to come in, but scrapes of /metrics."
  type        = list(string)
}

variable "instance_type" {
  description = "An arm64 one"
  type        = string
  default     = "t4g.small"
}

variable "memory_mib" {
  description = "Memory of the task at most"
  type        = number
  default     = 1024
}

variable "volume_gib" {
  description = "Size of the state's volume"
  type        = number
  default     = 8
}

variable "listen" {
  description = "Address of metrics and health, on the instance's network. 0.0.0.0:9464 where Prometheus scrapes it from elsewhere."
  type        = string
  default     = "127.0.0.1:9464"
}

variable "policies" {
  description = "Policies of the daemon by name, as JSON: those of deploy/iam"
  type        = map(string)
}

variable "environment" {
  description = "Variables that sluice.yaml names"
  type        = map(string)
  default     = {}
}

variable "secrets" {
  description = "Variables whose values are in Secrets Manager or SSM: name to ARN"
  type        = map(string)
  default     = {}
}
