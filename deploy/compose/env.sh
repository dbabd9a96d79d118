# . deploy/compose/env.sh: programs and the AWS CLI then find the local servers.
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000 AWS_ENDPOINT_URL_SQS=http://127.0.0.1:9324
export SLUICE_ENDPOINT_DYNAMODB=http://127.0.0.1:8000 SLUICE_ENDPOINT_SQS=http://127.0.0.1:9324
