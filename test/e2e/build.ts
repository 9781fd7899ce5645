/** Builds the images of the tests beforehand, for `make e2e` to find. */

import { testImages } from './support/images.ts';

const started = performance.now();
const { isNew } = await testImages();
const seconds = ((performance.now() - started) / 1000).toFixed(1);
console.log(`e2e: the images ${isNew ? `were built in ${seconds} s` : 'are there already'}`);
