/** The JSON Schema of a workload, derived from the table of its fields. Only `checkedWorkload` checks combinations. */
import type { JsonValue } from '../../machine/index.ts';
import { perfTestNames } from './perf-plan.ts';
import { otherTestNames, workloadFieldNames, workloadFields } from './test-kinds.ts';
import type { WorkloadField } from './workload-fields.ts';

export const workloadSchemaName = 'hca-workload/1';

/** Draft 7, like the schemas of outputs. */
export function workloadSchema(): JsonValue {
  const fields = workloadFieldNames.map((name) => [name, schemaOf(workloadFields[name])]);
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $id: 'https://hca-emulator/schemas/hca-workload-1.schema.json',
    title: workloadSchemaName,
    description: 'A workload: the task of the programs of `hca perf`. Omitted fields have their defaults.',
    type: 'object',
    required: ['test'],
    additionalProperties: false,
    properties: {
      test: { enum: [...perfTestNames], description: `test of perftest, or ${otherTestNames.join(', ')}` },
      ...(Object.fromEntries(fields) as Record<string, JsonValue>),
    },
  };
}

function schemaOf(field: WorkloadField): JsonValue {
  const { meaning: description } = field;
  if (field.kind === 'flag') return { type: 'boolean', description };
  if (field.kind === 'choice') return { enum: [...field.choices], description };
  if (field.kind === 'text') return { type: 'string', pattern: `^${field.form}$`, description };
  return { type: 'integer', minimum: field.min, maximum: field.max, description };
}
