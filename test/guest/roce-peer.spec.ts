/** A stock guest and a simulated host at the two ends of an Ethernet cable, by RoCE. */
import { testScenario } from './suite.ts';

await testScenario('roce-peer', 'debian');
