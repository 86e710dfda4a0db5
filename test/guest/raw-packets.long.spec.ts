/** Raw-packet QPs of the stock mlx4_ib, steered by rules: perftest's raw_ethernet programs between two guests. */
import { testScenario } from './suite.ts';

await testScenario('raw-packets', 'debian');
