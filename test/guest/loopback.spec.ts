/** Data moves over one adapter that talks to itself. */
import { testScenario } from './suite.ts';

await testScenario('loopback', 'debian');
