/** Unbinds the driver from sessions of stock ib_srp: queue pairs are drained, and no worker hangs. */
import { testScenario } from './suite.ts';

await testScenario('srp-unbind', 'debian');
