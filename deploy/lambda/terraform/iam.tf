data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "sluice" {
  name               = var.name
  assume_role_policy = data.aws_iam_policy_document.assume.json
}

data "aws_iam_policy_document" "sluice" {
  statement {
    sid       = "Log"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.sluice.arn}:*"]
  }

  statement {
    sid       = "ReadTheStream"
    actions   = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
    resources = [var.stream_arn]
  }

  statement {
    sid       = "ListStreamsHasNoResource"
    actions   = ["dynamodb:ListStreams"]
    resources = ["*"]
  }

  statement {
    sid       = "TellWhatWasGivenUp"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.given_up.arn]
  }

  dynamic "statement" {
    for_each = length(var.target_queue_arns) > 0 ? [1] : []
    content {
      sid       = "SendWhatRoutesSend"
      actions   = ["sqs:SendMessage", "sqs:GetQueueUrl", "sqs:GetQueueAttributes"]
      resources = var.target_queue_arns
    }
  }

  dynamic "statement" {
    for_each = aws_sqs_queue.messages
    content {
      sid       = "ReadTheQueue"
      actions   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
      resources = [statement.value.arn]
    }
  }
}

resource "aws_iam_role_policy" "sluice" {
  name   = "sluice"
  role   = aws_iam_role.sluice.id
  policy = data.aws_iam_policy_document.sluice.json
}

# What further sinks need: deploy/iam has a policy for each use.
resource "aws_iam_role_policy" "more" {
  for_each = var.more_policies
  name     = each.key
  role     = aws_iam_role.sluice.id
  policy   = each.value
}
