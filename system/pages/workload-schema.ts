/** The published JSON Schema of workloads. `npm run docs` writes it; a spec holds the file to the table of fields. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { workloadSchema } from '../workloads/workload-schema.ts';

const file = new URL('../../schemas/hca-workload-1.schema.json', import.meta.url);

export const workloadSchemaText = (): string => `${JSON.stringify(workloadSchema(), null, 2)}\n`;
export const readWorkloadSchema = (): string => readFileSync(file, 'utf8');

if (process.argv[1] === import.meta.filename) {
  mkdirSync(new URL('.', file), { recursive: true });
  writeFileSync(file, workloadSchemaText());
}
