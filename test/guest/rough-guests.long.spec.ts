/** Guests that are killed, and that store at random. */
import { testScenario } from './suite.ts';

await testScenario('rough-guests', 'backports');
