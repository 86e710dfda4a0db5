/** What is compared by speed: it comes last, when the others have mostly done. */
import { testScenario } from './suite.ts';

await testScenario('soft-roce', 'debian');
