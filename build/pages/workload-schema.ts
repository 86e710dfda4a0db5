/** The published JSON Schema of workloads, which `npm run schemas` writes with those of outputs (json-schemas.ts). */
import { workloadSchema } from '../../experiments/workloads/index.ts';

export const workloadSchemaText = (): string => `${JSON.stringify(workloadSchema(), null, 1)}\n`;
