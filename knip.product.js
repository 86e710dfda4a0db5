/**
 * Knip without specs (`npm run lint`): a file or an export that only its own specs use fails. Helpers of specs may use what they like:
 * they are entries here.
 */
import whole from './knip.json' with { type: 'json' };

const helpers = ['test/**/*.ts', '**/testing/**/*.ts', '**/testing*.ts', '**/*-bench.ts', '**/toy-*.ts'];
const runners = ['build/*.{ts,js}', 'build/pages/*.ts', 'build/site/**/*.ts'];

export default {
  entry: [...whole.entry, ...runners, ...helpers],
  project: ['**/*.ts', '!dist/**', '!examples/budget-project/**', '!**/*.spec.ts', '!vitest*.ts'],
  vitest: false,
  ignoreBinaries: whole.ignoreBinaries,
  ignoreExportsUsedInFile: true,
  include: ['files', 'exports', 'types'],
  rules: { duplicates: 'off' },
};
