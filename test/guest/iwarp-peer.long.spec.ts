/** Linux's Soft-iWARP in a guest, and a simulated host with an iWARP card; all that passes the cable is read by `hca wire` and by tshark. */
import { checkIwarp } from './iwarp-capture.ts';
import { testScenario } from './suite.ts';

/** All that the scenario sends is less. */
const sizeBytes = 2 ** 26;

await testScenario('iwarp-peer', 'debian', { sizeBytes, check: checkIwarp });
