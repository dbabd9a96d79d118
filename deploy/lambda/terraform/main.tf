# Sluice as a Lambda function on the stream of a table, and on a queue where one
# is wanted. make lambda makes build.zip.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.40, < 7.0"
    }
  }
}

locals {
  timeout = 60
}

resource "aws_lambda_function" "sluice" {
  function_name    = var.name
  description      = "Reacts to the changes of a table"
  filename         = var.zip
  source_code_hash = filebase64sha256(var.zip)
  handler          = "bootstrap"
  runtime          = "provided.al2023"
  architectures    = ["arm64"]
  memory_size      = 512
  timeout          = local.timeout
  role             = aws_iam_role.sluice.arn

  environment {
    variables = merge({ SLUICE_CONFIG = "sluice.yaml" }, var.environment)
  }

  logging_config {
    log_format = "JSON"
    log_group  = aws_cloudwatch_log_group.sluice.name
  }

  depends_on = [aws_iam_role_policy.sluice]
}

resource "aws_lambda_event_source_mapping" "stream" {
  function_name    = aws_lambda_function.sluice.arn
  event_source_arn = var.stream_arn

  # Without it the answer is not read, and records that failed are lost.
  function_response_types = ["ReportBatchItemFailures"]

  # LATEST would lose what is written while the mapping is made.
  starting_position                  = "TRIM_HORIZON"
  batch_size                         = var.batch_size
  maximum_batching_window_in_seconds = 1
  parallelization_factor             = var.parallelization_factor
  bisect_batch_on_function_error     = true

  # -1, the default, lets one bad record hold up its shard for a day.
  maximum_retry_attempts = 10

  # 20 of the 24 hours: what is given up can still be read in the stream.
  maximum_record_age_in_seconds = 72000

  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.given_up.arn
    }
  }

  # What no route takes need not cost an invocation.
  dynamic "filter_criteria" {
    for_each = length(var.filters) > 0 ? [1] : []
    content {
      dynamic "filter" {
        for_each = var.filters
        content {
          pattern = filter.value
        }
      }
    }
  }
}

resource "aws_sqs_queue" "messages" {
  count = var.with_queue ? 1 : 0
  name  = "${var.name}-messages"

  # A message must not come again while it is handled.
  visibility_timeout_seconds = 6 * local.timeout
  message_retention_seconds  = 1209600
  sqs_managed_sse_enabled    = true
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_messages[0].arn
    maxReceiveCount     = 5
  })
}

resource "aws_sqs_queue" "dead_messages" {
  count                     = var.with_queue ? 1 : 0
  name                      = "${var.name}-dead-messages"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

resource "aws_lambda_event_source_mapping" "queue" {
  count            = var.with_queue ? 1 : 0
  function_name    = aws_lambda_function.sluice.arn
  event_source_arn = aws_sqs_queue.messages[0].arn

  # Without it the answer is not read, and messages that failed are deleted.
  function_response_types = ["ReportBatchItemFailures"]
  batch_size              = 10

  scaling_config {
    maximum_concurrency = var.queue_concurrency
  }
}

# Positions of the batches that were given up; not their records. They are in the
# stream for 24 hours after the change.
resource "aws_sqs_queue" "given_up" {
  name                      = "${var.name}-given-up"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

resource "aws_cloudwatch_log_group" "sluice" {
  name              = "/sluice/${var.name}"
  retention_in_days = 30
}

# A partial answer is a success to the service: its Errors metric stays at 0.
resource "aws_cloudwatch_metric_alarm" "behind" {
  alarm_name          = "${var.name}-behind"
  alarm_description   = "The oldest record of a batch is older than an hour; records expire after 24."
  namespace           = "AWS/Lambda"
  metric_name         = "IteratorAge"
  dimensions          = { FunctionName = aws_lambda_function.sluice.function_name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = 3600000
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
}

resource "aws_cloudwatch_metric_alarm" "given_up" {
  alarm_name          = "${var.name}-given-up"
  alarm_description   = "Records were given up. Their positions are in the queue; the stream holds them for 24 hours."
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.given_up.name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
}
