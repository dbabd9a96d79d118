variable "name" {
  description = "Of the function, its role, log and queue"
  type        = string
  default     = "sluice"
}

variable "zip" {
  description = "bootstrap, sluice.yaml and the files that it names, as make lambda builds it"
  type        = string
  default     = "../build.zip"
}

variable "stream_arn" {
  description = "The table's stream: aws_dynamodb_table.x.stream_arn"
  type        = string
}

variable "with_queue" {
  description = "Whether a queue is made whose messages the function takes, too"
  type        = bool
  default     = false
}

variable "target_queue_arns" {
  description = "Queues that routes send to, and the one of deadLetter.queue"
  type        = list(string)
  default     = []
}

variable "filters" {
  description = "Patterns of at most 5 filters, of which one has to match: what sluice lambda filters | jq '[.Filters[].Pattern]' prints"
  type        = list(string)
  default     = []

  validation {
    condition     = length(var.filters) <= 5
    error_message = "A mapping takes 5 filters at most."
  }
}

variable "batch_size" {
  description = "Records of an invocation at most"
  type        = number
  default     = 100

  validation {
    condition     = var.batch_size >= 1 && var.batch_size <= 10000
    error_message = "A batch has 1 to 10000 records."
  }
}

variable "parallelization_factor" {
  description = "Invocations at a time for one shard. The order holds for each item."
  type        = number
  default     = 1

  validation {
    condition     = var.parallelization_factor >= 1 && var.parallelization_factor <= 10
    error_message = "The factor is 1 to 10."
  }
}

variable "queue_concurrency" {
  description = "Invocations at a time for the queue, 2 at least; what the sinks bear"
  type        = number
  default     = 10

  validation {
    condition     = var.queue_concurrency >= 2
    error_message = "The service takes 2 at least."
  }
}

variable "environment" {
  description = "Variables that sluice.yaml names, and SLUICE_LETTER_KEY where it names deadLetter.queue"
  type        = map(string)
  sensitive   = true
  default     = {}
}

variable "more_policies" {
  description = "Further policies of the role by name, as JSON: those of deploy/iam"
  type        = map(string)
  default     = {}
}

variable "alarm_topic_arns" {
  description = "SNS topics that are told when the function falls behind or gives records up"
  type        = list(string)
  default     = []
}
