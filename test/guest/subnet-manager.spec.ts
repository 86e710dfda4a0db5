/** A stock subnet manager, and its users. */
import { testScenario } from './suite.ts';

await testScenario('subnet-manager', 'debian');
