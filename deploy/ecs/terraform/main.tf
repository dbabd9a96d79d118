# One daemon on Amazon ECS, on one EC2 instance, with its state on an EBS volume
# that outlives task and instance. README.md says why not on Fargate.

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
  grace = 25
}

data "aws_subnet" "sluice" {
  id = var.subnet_id
}

data "aws_region" "current" {}

data "aws_ssm_parameter" "ami" {
  name = "/aws/service/ecs/optimized-ami/amazon-linux-2023/arm64/recommended/image_id"
}

# One volume can be attached to one instance at a time. It is what keeps two
# daemons apart, besides the lock on the state file.
resource "aws_ebs_volume" "state" {
  availability_zone = data.aws_subnet.sluice.availability_zone
  size              = var.volume_gib
  type              = "gp3"
  encrypted         = true
  tags              = { Name = "${var.name}-state" }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_ecs_cluster" "sluice" {
  name = var.name
}

resource "aws_launch_template" "sluice" {
  name_prefix            = "${var.name}-"
  image_id               = data.aws_ssm_parameter.ami.value
  instance_type          = var.instance_type
  vpc_security_group_ids = var.security_group_ids

  iam_instance_profile {
    arn = aws_iam_instance_profile.instance.arn
  }

  metadata_options {
    http_tokens = "required"
  }

  user_data = base64encode(templatefile("${path.module}/user-data.sh", {
    cluster = aws_ecs_cluster.sluice.name
    region  = data.aws_region.current.id
    volume  = aws_ebs_volume.state.id
  }))
}

# One instance, in the volume's zone; another takes its place when it fails.
resource "aws_autoscaling_group" "sluice" {
  name                = var.name
  min_size            = 0
  max_size            = 1
  desired_capacity    = 1
  vpc_zone_identifier = [var.subnet_id]

  launch_template {
    id      = aws_launch_template.sluice.id
    version = aws_launch_template.sluice.latest_version
  }

  # The old instance goes before the new one comes: it has the volume.
  instance_refresh {
    strategy = "Rolling"
    preferences {
      min_healthy_percentage = 0
      max_healthy_percentage = 100
    }
  }

  tag {
    key                 = "Name"
    value               = var.name
    propagate_at_launch = true
  }
}

resource "aws_cloudwatch_log_group" "sluice" {
  name              = "/sluice/${var.name}"
  retention_in_days = 30
}

resource "aws_ecs_task_definition" "sluice" {
  family                   = var.name
  requires_compatibilities = ["EC2"]
  network_mode             = "host"
  task_role_arn            = aws_iam_role.task.arn
  execution_role_arn       = aws_iam_role.execution.arn

  volume {
    name      = "state"
    host_path = "/var/lib/sluice"
  }

  container_definitions = jsonencode([{
    name                   = "sluice"
    image                  = var.image
    essential              = true
    cpu                    = 0
    memory                 = var.memory_mib
    user                   = "65532:65532"
    readonlyRootFilesystem = true
    linuxParameters        = { capabilities = { drop = ["ALL"] } }
    dockerSecurityOptions  = ["no-new-privileges"]
    command                = ["run", "--config", "/etc/sluice/sluice.yaml"]
    healthCheck            = { command = ["CMD", "/usr/local/bin/sluice", "health"], interval = 30, timeout = 10, retries = 3, startPeriod = 60 }

    # SIGKILL comes this many seconds after SIGTERM; more than the grace.
    stopTimeout = local.grace + 15

    environment = concat([
      { name = "AWS_REGION", value = data.aws_region.current.id },
      { name = "SLUICE_STATE", value = "/var/lib/sluice/state.db" },
      { name = "SLUICE_LISTEN", value = var.listen },
      { name = "SLUICE_GRACE", value = "${local.grace}s" },
      { name = "SLUICE_LOG_FORMAT", value = "json" },
    ], [for name, value in var.environment : { name = name, value = value }])
    secrets = [for name, arn in var.secrets : { name = name, valueFrom = arn }]

    mountPoints  = [{ sourceVolume = "state", containerPath = "/var/lib/sluice", readOnly = false }]
    portMappings = []
    volumesFrom  = []

    logConfiguration = {
      logDriver = "awslogs"
      options = {
        awslogs-group         = aws_cloudwatch_log_group.sluice.name
        awslogs-region        = data.aws_region.current.id
        awslogs-stream-prefix = "sluice"
      }
    }
  }])
}

# One task, which ends before the next begins: two would each read the whole of
# every stream.
resource "aws_ecs_service" "sluice" {
  name                               = var.name
  cluster                            = aws_ecs_cluster.sluice.id
  task_definition                    = aws_ecs_task_definition.sluice.arn
  launch_type                        = "EC2"
  desired_count                      = 1
  deployment_minimum_healthy_percent = 0
  deployment_maximum_percent         = 100

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }
}
