/** Verbs between two guests on an Ethernet cable, by the stock mlx4_ib, on a card that has both versions of RoCE. */
import { testScenario } from './suite.ts';

await testScenario('roce', 'debian');
