/** Linux's Soft-iWARP over the adapters of two guests; all that passes the cable is read by `hca wire` and by tshark. */
import { checkIwarp } from './iwarp-capture.ts';
import { testScenario } from './suite.ts';

/** All that the scenario sends is less. */
const sizeBytes = 2 ** 26;

await testScenario('soft-iwarp', 'debian', { sizeBytes, check: checkIwarp });
