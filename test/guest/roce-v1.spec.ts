/** The same on a card that has version 1 only, whose GIDs come by another command; and TCP beside it. */
import { testScenario } from './suite.ts';

await testScenario('roce-v1', 'debian');
