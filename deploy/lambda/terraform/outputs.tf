output "function_name" {
  value = aws_lambda_function.sluice.function_name
}

output "given_up_queue" {
  description = "Positions of what was given up"
  value       = aws_sqs_queue.given_up.url
}

output "queue" {
  description = "Its messages take the routes <kind>#MESSAGE"
  value       = one(aws_sqs_queue.messages[*].url)
}
