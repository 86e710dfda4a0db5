/** Linux's Soft-iWARP and an iWARP card over a cable that loses, doubles, damages and reorders frames; and messages up to 16 MiB. */
import { testScenario } from './suite.ts';

/** The two ends and their ledgers judge the messages: a capture has frames that the cable's faults have spoilt. */
const check = async (): Promise<string> => 'the frames are not judged';

await testScenario('iwarp-peer-faults', 'debian', { sizeBytes: 2 ** 20, check });
