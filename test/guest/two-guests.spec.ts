/** Data moves between two guests at once. */
import { testScenario } from './suite.ts';

await testScenario('two-guests', 'debian');
