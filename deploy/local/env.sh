# The variables of the quick start, for the servers of deploy/local/compose.yaml:
# what make servers prints for its own. In a shell: . deploy/local/env.sh
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
export SLUICE_ENDPOINT_DYNAMODB=http://127.0.0.1:8000 SLUICE_ENDPOINT_SQS=http://127.0.0.1:9324
export SLUICE_ENDPOINT_OPENSEARCH=http://127.0.0.1:9200 SLUICE_OPENSEARCH=http://127.0.0.1:9200
export SLUICE_ENDPOINT_OPENSEARCH3=http://127.0.0.1:9201
