/** A stock guest and a simulated host at the two ends of an Ethernet cable, by the RoCE of a ConnectX-3. */
import { testScenario } from './suite.ts';

await testScenario('roce-v1-peer', 'debian');
