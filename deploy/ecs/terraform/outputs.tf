output "volume_id" {
  description = "Positions and dead letters; back it up by snapshots if you want to"
  value       = aws_ebs_volume.state.id
}

output "log_group" {
  value = aws_cloudwatch_log_group.sluice.name
}
