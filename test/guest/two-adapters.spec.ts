/** First what Linux waits a whole minute for, nearly all of it idle; then two guests at once. */
import { testScenario } from './suite.ts';

await testScenario('faults-silence', 'debian');
await testScenario('two-guests', 'debian');
await testScenario('subnet-manager', 'debian');
