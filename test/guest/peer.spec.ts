/** A stock guest and a simulated host at the two ends of a cable. */
import { testScenario } from './suite.ts';

await testScenario('peer', 'debian');
